package main

// inputMutants break the rules of input from outside: settings, addresses, texts, other protocols. Some
// break the rule that reports must not stop the service.
var inputMutants = []mutant{
	{rule: "a-log-stops-nothing", name: "a line waits for the log", file: "internal/process/daemon/output.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"	if o.closed || len(o.queue)+len(text) > outputBytes {\n", "	for !o.closed && len(o.queue)+len(text) > outputBytes {\n		o.mu.Unlock()\n		time.Sleep(time.Millisecond)\n		o.mu.Lock()\n	}\n	if o.closed {\n"}}},
	{rule: "a-log-stops-nothing", name: "a daemon writes to stderr itself", file: "internal/process/daemon/daemon.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"	return tool(name, args, out, run)\n", "	return tool(name, args, os.Stderr, run)\n"}}},
	{rule: "a-log-stops-nothing", name: "lines without room are not counted", file: "internal/process/daemon/output.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"		o.dropped += lines(text)\n		return len(text), nil\n", "		return len(text), nil\n"}}},
	{rule: "a-log-stops-nothing", name: "lines that cannot be written are not counted", file: "internal/process/daemon/output.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"	o.dropped += lines(text[min(max(n, 0), len(text)):])\n", "	_ = n\n"}}},
	{rule: "a-log-stops-nothing", name: "the log does not say that lines are missing", file: "internal/process/daemon/output.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"				o.tell()\n", ""}}},
	{rule: "a-log-stops-nothing", name: "the end waits for the log for ever", file: "internal/process/daemon/output.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"	case <-time.After(lastWords):\n", "	case <-make(chan int):\n"}}},
	{rule: "a-log-stops-nothing", name: "the end of the log's reader ends the daemon", file: "internal/process/daemon/daemon.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"	signal.Ignore(syscall.SIGPIPE)\n", ""}}},
	{rule: "early-hangups-are-noted", name: "an early SIGHUP ends the daemon", file: "internal/process/daemon/daemon.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"	signal.Notify(earlyHangups, syscall.SIGHUP)\n", ""}}},
	{rule: "early-hangups-are-noted", name: "an early SIGHUP is forgotten", file: "internal/process/daemon/reload.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"		case notified <- early:\n", "		case make(chan os.Signal, 1) <- early:\n"}}},
	{rule: "early-hangups-are-noted", name: "SIGHUP ends a program that starts again for its timers", file: "internal/process/daemon/slack_linux.go", in: []string{"internal/process/daemon"}, edits: []edit{
		{"	signal.Ignore(syscall.SIGHUP)", "	signal.Reset(syscall.SIGHUP)"}}},
	{rule: "the-audit-is-whole-or-counted", name: "a file that was moved or deleted is written on", file: "allocsvr/globalid/audit/audit.go", in: []string{"allocsvr/globalid/audit"}, edits: []edit{
		{"	if !l.named() {\n", "	if l.named(); false {\n"}}},
	{rule: "the-audit-is-whole-or-counted", name: "lines of a failed flush are not counted", file: "allocsvr/globalid/audit/audit.go", in: []string{"allocsvr/globalid/audit"}, edits: []edit{
		{"	l.dropped.Add(count(held) - count(whole))\n", ""}}},
	{rule: "the-audit-is-whole-or-counted", name: "SIGHUP does not let go of the file", file: "allocsvr/globalid/audit/audit.go", in: []string{"allocsvr/globalid/audit"}, edits: []edit{
		{"			l.flush()\n			l.shut()\n			l.ready()\n", "			l.flush()\n"}}},
	{rule: "json-is-unicode", name: "half a character is another text", file: "internal/base/jsontext/jsontext.go", in: []string{"internal/base/jsontext"}, edits: []edit{
		{"			if utf16.DecodeRune(unit, next) == utf8.RuneError {\n", "			if false && next == unit {\n"}}},
	{rule: "json-is-unicode", name: "bytes that are no text are another text", file: "internal/base/jsontext/jsontext.go", in: []string{"internal/base/jsontext"}, edits: []edit{
		{"	if !utf8.Valid(text) {\n", "	if false {\n"}}},
	{rule: "json-is-unicode", name: "a body over HTTP is not looked at", file: "router/json.go", in: []string{"router"}, edits: []edit{
		{"jsontext.Check(body); err != nil {", "jsontext.Check(nil); err != nil {"}}},
	{rule: "json-is-unicode", name: "a file of floors is not looked at", file: "cmd/seqctl/floorfile/floorfile.go", in: []string{"cmd/seqctl/floorfile"}, edits: []edit{
		{"jsontext.Check([]byte(text[:d.InputOffset()]))", "jsontext.Check(nil)"}}},
	{rule: "json-is-unicode", name: "another encoding is read as UTF-8", file: "router/json.go", in: []string{"router"}, edits: []edit{
		{"	return charset == \"\" ||", "	return true || charset == \"\" ||"}}},
	{rule: "http-is-not-redis", name: "the body of a POST is carried out", file: "router/line/resp/parse.go", in: []string{"router/line/resp"}, edits: []edit{
		{"	if p.http(line) {\n", "	if false {\n"}}},
	{rule: "http-is-not-redis", name: "only POST is known", file: "router/line/resp/parse.go", in: []string{"router/line/resp"}, edits: []edit{
		{"		len(p.spans) > 1 && bytes.HasPrefix", "		false && bytes.HasPrefix"}}},
	{rule: "a-head-takes-nothing", name: "a HEAD of Leaf's paths takes a number", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"to.method != http.MethodGet || to.takes || ", "to.method != http.MethodGet || "}}},
	{rule: "ten-is-ten", name: "010 is 8", file: "internal/base/config/strict.go", in: []string{"internal/base/config"}, edits: []edit{
		{"	if len(digits) > 1 && digits[0] == '0' &&", "	if false && digits[0] == '0' &&"}}},
	{rule: "ten-is-ten", name: "a number of a daemon is not looked at", file: "internal/base/config/config.go", in: []string{"internal/base/config"}, edits: []edit{
		{"	Strict(fs)\n", ""}}},
	{rule: "ten-is-ten", name: "a number of seqctl is not looked at", file: "cmd/seqctl/ctl/root.go", in: []string{"cmd/seqctl/ctl"}, edits: []edit{
		{"	strict(root)\n", ""}}},
	{rule: "ten-is-ten", name: "a number of a policy is not looked at", file: "internal/wire/auth/policy.go", in: []string{"internal/wire/auth"}, edits: []edit{
		{"; line > 0 {\n			return bad(fmt.Errorf(\"line", "; line > 9999 {\n			return bad(fmt.Errorf(\"line"}}},
	{rule: "variables-are-known", name: "a misspelt variable sets nothing", file: "internal/base/config/known.go", in: []string{"internal/base/config"}, edits: []edit{
		{"		errs = append(errs, err)\n", ""}}},
	{rule: "variables-are-known", name: "a daemon does not look", file: "internal/process/daemon/common.go", in: []string{"cmd/allocsvr"}, edits: []edit{
		{"	if err := config.CheckEnvironment(os.Environ()); err != nil {", "	if err := config.CheckEnvironment(os.Environ()); false {"}}},
	{rule: "variables-are-known", name: "those of a Service are refused", file: "internal/base/config/known.go", in: []string{"internal/base/config"}, edits: []edit{
		{", foreign.MatchString(name):", ", false && foreign.MatchString(name):"}}},
	{rule: "addresses-can-work", name: "all interfaces are told", file: "internal/base/hostport/hostport.go", in: []string{"internal/base/hostport"}, edits: []edit{
		{"	case everywhere(host):\n", "	case false:\n"}}},
	{rule: "addresses-can-work", name: "listening on all interfaces needs no address to tell", file: "internal/base/hostport/hostport.go", in: []string{"internal/base/hostport"}, edits: []edit{
		{"	if err == nil && (host == \"\" || everywhere(host)) {", "	if err == nil && host == \"none\" {"}}},
	{rule: "addresses-can-work", name: "an AllocSvr does not look", file: "allocsvr/config.go", in: []string{"cmd/allocsvr"}, edits: []edit{
		{"	if err := c.checkAddrs(); err != nil {", "	if err := c.checkAddrs(); false {"}}},
	{rule: "addresses-can-work", name: "a store does not look", file: "storesvr/config.go", in: []string{"cmd/storesvr"}, edits: []edit{
		{"	if err := c.checkAddrs(); err != nil {", "	if err := c.checkAddrs(); false {"}}},
	{rule: "addresses-can-work", name: "a router does not look", file: "router/config.go", in: []string{"cmd/router"}, edits: []edit{
		{"		if err != nil {\n			errs = append(errs, fmt.Errorf(\"%s %w\", field, err))\n", "		if false {\n			errs = append(errs, fmt.Errorf(\"%s %w\", field, err))\n"}}},
	{rule: "errors-say-what-is-so", name: "full disks are a deadline", file: "allocsvr/section/step.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	r.t.full.Store(errors.Is(out.Err, seq.ErrStoreFull))\n", "	_ = errors.Is(out.Err, seq.ErrStoreFull)\n"}}},
	{rule: "errors-say-what-is-so", name: "a full disk is told for ever", file: "allocsvr/section/step.go", in: []string{"allocsvr/section"}, edits: []edit{
		{"	r.t.full.Store(false)\n", ""}}},
	{rule: "errors-say-what-is-so", name: "an answer that came late is none", file: "cmd/seqctl/ctl/errors.go", in: []string{"cmd/seqctl/ctl"}, edits: []edit{
		{"	case errors.Is(err, context.DeadlineExceeded) && reasoned(err):\n", "	case false && reasoned(err):\n"}}},
	{rule: "errors-say-what-is-so", name: "each SDK on the way says what was asked", file: "internal/sdk/call/errors.go", in: []string{"internal/sdk/call"}, edits: []edit{
		{"	if strings.Contains(err.Error(), what+\": \") {\n", "	if false && strings.Contains(err.Error(), what+\": \") {\n"}}},
	{rule: "names-fit-everywhere", name: "init takes names that no certificate can have", file: "cmd/storesvr/init.go", in: []string{"cmd/storesvr"}, edits: []edit{
		{"	if err := o.checkNames(); err != nil {\n", "	if err := o.checkNames(); false {\n"}}},
	{rule: "names-fit-everywhere", name: "a store of before with another name does not start", file: "cmd/storesvr/init.go", in: []string{"cmd/storesvr"}, edits: []edit{
		{"; o.ifMissing && err == nil {\n", "; false && err == nil {\n"}}},
}
