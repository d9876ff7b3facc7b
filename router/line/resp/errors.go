package resp

import (
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// retryWord begins the errors that are worth repeating the command for.
const retryWord = "TRYAGAIN "

// codedError begins with another word than ERR.
type codedError struct{ code, text string }

func (e *codedError) Error() string { return e.text }

// faultText is an error as it stands in a reply. Those of the cluster are named by their
// ErrorCode. TRYAGAIN is the word that clients of Redis repeat a command for: here they
// may always, since numbers are skipped and never repeated.
func faultText(err error) string {
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code + " " + coded.text
	}
	code := rpc.CodeOf(err)
	st, isStatus := status.FromError(rpc.ToStatus(err))
	if code == 0 && (!isStatus || st.Code() == codes.Internal || st.Code() == codes.Unknown) {
		return "ERR " + err.Error()
	}
	name := strings.TrimPrefix(code.String(), "ERROR_CODE_")
	if code == 0 {
		name = strings.ToUpper(st.Code().String())
	}
	word := "ERR "
	switch st.Code() {
	case codes.Unauthenticated:
		word = "NOAUTH "
	case codes.PermissionDenied:
		word = "NOPERM "
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Aborted:
		word = retryWord
	}
	return word + name + ": " + st.Message()
}
