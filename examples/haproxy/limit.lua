-- http-request lua.limit URL asks celld, and sets txn.limit to passes, limited, refused (a key or the policy is missing) or unknown (celld is away).
core.register_action("limit", { "http-req" }, function(txn, url)
	local headers = { ["x-real-ip"] = { txn.f:src() } }
	-- headers["authorization"] = { "Bearer …" } -- with --http-token-file
	-- headers["x-api-key"] = { txn.f:req_fhdr("x-api-key") } -- with by/x-api-key/x-real-ip
	local answer = core.httpclient():get({ url = url, headers = headers, timeout = 2000 })
	local status = answer and answer.status
	if status == 200 then
		txn:set_var("txn.limit", "passes")
	elseif status == 429 then
		txn:set_var("txn.limit", "limited")
		for _, name in ipairs({ "retry-after", "ratelimit", "ratelimit-policy" }) do
			txn:set_var("txn." .. name:gsub("-", "_"), answer.headers[name][0])
		end
	elseif status and status < 500 then
		txn:set_var("txn.limit", "refused")
	else
		txn:set_var("txn.limit", "unknown")
	end
end, 1)
