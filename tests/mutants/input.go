package main

// inputMutants are those of what comes in from outside: settings, addresses, texts, other
// protocols; and of what only tells, which must not stop what serves.
var inputMutants = []mutant{
	{rule: "a-log-stops-nothing", name: "a line waits for the log", file: "internal/daemon/output.go", in: []string{"internal/daemon"}, edits: []edit{
		{"	if o.closed || len(o.queue)+len(text) > outputBytes {\n", "	for !o.closed && len(o.queue)+len(text) > outputBytes {\n		o.mu.Unlock()\n		time.Sleep(time.Millisecond)\n		o.mu.Lock()\n	}\n	if o.closed {\n"}}},
	{rule: "a-log-stops-nothing", name: "lines without room are not counted", file: "internal/daemon/output.go", in: []string{"internal/daemon"}, edits: []edit{
		{"		o.dropped += lines(text)\n		return len(text), nil\n", "		return len(text), nil\n"}}},
	{rule: "a-log-stops-nothing", name: "lines that cannot be written are not counted", file: "internal/daemon/output.go", in: []string{"internal/daemon"}, edits: []edit{
		{"	o.dropped += lines(text[min(max(n, 0), len(text)):])\n", "	_ = n\n"}}},
	{rule: "a-log-stops-nothing", name: "the log does not say that lines are missing", file: "internal/daemon/output.go", in: []string{"internal/daemon"}, edits: []edit{
		{"				o.tell()\n", ""}}},
	{rule: "a-log-stops-nothing", name: "the end waits for the log for ever", file: "internal/daemon/output.go", in: []string{"internal/daemon"}, edits: []edit{
		{"	case <-time.After(lastWords):\n", "	case <-make(chan int):\n"}}},
	{rule: "a-log-stops-nothing", name: "the end of the log's reader ends the daemon", file: "internal/daemon/daemon.go", in: []string{"internal/daemon"}, edits: []edit{
		{"	signal.Ignore(syscall.SIGPIPE)\n", ""}}},
	{rule: "early-hangups-are-noted", name: "an early SIGHUP ends the daemon", file: "internal/daemon/daemon.go", in: []string{"internal/daemon"}, edits: []edit{
		{"	signal.Notify(earlyHangups, syscall.SIGHUP)\n", ""}}},
	{rule: "early-hangups-are-noted", name: "an early SIGHUP is forgotten", file: "internal/daemon/reload.go", in: []string{"internal/daemon"}, edits: []edit{
		{"		case notified <- early:\n", "		case make(chan os.Signal, 1) <- early:\n"}}},
	{rule: "early-hangups-are-noted", name: "SIGHUP ends a program that starts again for its timers", file: "internal/daemon/slack_linux.go", in: []string{"internal/daemon"}, edits: []edit{
		{"	signal.Ignore(syscall.SIGHUP)", "	signal.Reset(syscall.SIGHUP)"}}},
	{rule: "the-audit-is-whole-or-counted", name: "a file that was moved or deleted is written on", file: "allocsvr/globalid/audit/audit.go", in: []string{"allocsvr/globalid/audit"}, edits: []edit{
		{"	if !l.named() {\n", "	if l.named(); false {\n"}}},
	{rule: "the-audit-is-whole-or-counted", name: "lines of a failed flush are not counted", file: "allocsvr/globalid/audit/audit.go", in: []string{"allocsvr/globalid/audit"}, edits: []edit{
		{"	l.dropped.Add(count(held) - count(whole))\n", ""}}},
	{rule: "the-audit-is-whole-or-counted", name: "SIGHUP does not let go of the file", file: "allocsvr/globalid/audit/audit.go", in: []string{"allocsvr/globalid/audit"}, edits: []edit{
		{"			l.flush()\n			l.shut()\n			l.ready()\n", "			l.flush()\n"}}},
	{rule: "json-is-unicode", name: "half a character is another text", file: "internal/jsontext/jsontext.go", in: []string{"internal/jsontext"}, edits: []edit{
		{"			if utf16.DecodeRune(unit, next) == utf8.RuneError {\n", "			if false && next == unit {\n"}}},
	{rule: "json-is-unicode", name: "bytes that are no text are another text", file: "internal/jsontext/jsontext.go", in: []string{"internal/jsontext"}, edits: []edit{
		{"	if !utf8.Valid(text) {\n", "	if false {\n"}}},
	{rule: "json-is-unicode", name: "a body over HTTP is not looked at", file: "router/json.go", in: []string{"router"}, edits: []edit{
		{"jsontext.Check(body); err != nil {", "jsontext.Check(nil); err != nil {"}}},
	{rule: "json-is-unicode", name: "a file of floors is not looked at", file: "internal/floorfile/floorfile.go", in: []string{"internal/floorfile"}, edits: []edit{
		{"jsontext.Check([]byte(text[:d.InputOffset()]))", "jsontext.Check(nil)"}}},
	{rule: "json-is-unicode", name: "another encoding is read as UTF-8", file: "router/json.go", in: []string{"router"}, edits: []edit{
		{"	return charset == \"\" ||", "	return true || charset == \"\" ||"}}},
	{rule: "http-is-not-redis", name: "the body of a POST is carried out", file: "router/resp/parse.go", in: []string{"router/resp"}, edits: []edit{
		{"	if p.http(line) {\n", "	if false {\n"}}},
	{rule: "http-is-not-redis", name: "only POST is known", file: "router/resp/parse.go", in: []string{"router/resp"}, edits: []edit{
		{"		len(p.spans) > 1 && bytes.HasPrefix", "		false && bytes.HasPrefix"}}},
	{rule: "a-head-takes-nothing", name: "a HEAD of Leaf's paths takes a number", file: "router/front.go", in: []string{"router"}, edits: []edit{
		{"to.method != http.MethodGet || to.takes || ", "to.method != http.MethodGet || "}}},
}
