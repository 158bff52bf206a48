-- http-request lua.limit URL asks celld, and sets txn.limit to passes, limited or unknown: celld did not answer.
core.register_action("limit", { "http-req" }, function(txn, url)
	local headers = { ["x-real-ip"] = { txn.f:src() } }
	-- headers["authorization"] = { "Bearer …" } -- with --http-token-file
	local answer = core.httpclient():get({ url = url, headers = headers, timeout = 1000 })
	local status = answer and answer.status
	if status == 200 then
		txn:set_var("txn.limit", "passes")
	elseif status == 429 then
		txn:set_var("txn.limit", "limited")
		txn:set_var("txn.retry_after", answer.headers["retry-after"][0])
	else
		txn:set_var("txn.limit", "unknown")
	end
end, 1)
