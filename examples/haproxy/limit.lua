-- http-request lua.limit URL asks celld, and sets txn.limit to passes, limited, refused (a key or the policy is missing) or unknown (celld is away).
core.register_action("limit", { "http-req" }, function(txn, url)
	local headers = { ["x-real-ip"] = { txn.f:src() } }
	-- headers["authorization"] = { "Bearer …" } -- with --http-token-file
	-- headers["x-api-key"] = { txn.f:req_fhdr("x-api-key") } -- with by/x-api-key/x-real-ip
	local answer = core.httpclient():get({ url = url, headers = headers, timeout = 2000 })
	local status = answer and answer.status
	if status == 200 or status == 429 then
		txn:set_var("txn.limit", status == 200 and "passes" or "limited")
		for _, name in ipairs({ "retry-after", "ratelimit", "ratelimit-policy" }) do
			local values = answer.headers[name]
			if values then
				txn:set_var("txn." .. name:gsub("-", "_"), values[0])
			end
		end
	elseif status and status < 500 then
		txn:set_var("txn.limit", "refused")
	else
		txn:set_var("txn.limit", "unknown")
	end
end, 1)
