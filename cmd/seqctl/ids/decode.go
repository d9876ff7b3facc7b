package ids

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

func decodeCommand() *cobra.Command {
	o, m := &ctl.Options{}, &meaning{}
	var form string
	cmd := &cobra.Command{
		Use:   "decode ID",
		Short: "take an ID apart: its time, datacenter, worker and sequence",
		Long: `decode takes an ID apart. It needs no cluster; with --namespace or --addr it asks
one, which has the namespace's layout and also the datacenter's name.`,
		Example: "  seqctl snowflake decode 108152875544481803 --layout regional -o json\n" +
			"  seqctl snowflake decode 3nNeLuv1t79 --text base58\n" +
			"  seqctl snowflake decode 362637573840961538 --layout 'time:39,sequence:8,machine:16;unit=10ms;epoch=2014-09-01T00:00:00Z'",
		Args: between(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	m.addTo(cmd)
	cmd.Flags().StringVar(&form, "text", snowflake.Decimal.String(), "the ID's "+textHelp)
	cmd.SetFlagErrorFunc(negativeIsNoFlag)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		e, err := parseEncoding(form)
		if err != nil {
			return err
		}
		id, err := parseID(args[0], e)
		if err != nil {
			return err
		}
		l, asked, err := m.read(cmd)
		if err != nil {
			return err
		}
		if !asked {
			d, err := decodeHere(l, id)
			if err != nil {
				return err
			}
			return d.print(stdout, format)
		}
		req := &pb.SnowflakeDecodeRequest{Id: &pb.SnowflakeDecodeRequest_Number{Number: int64(id)}, Layout: m.layout, Namespace: m.namespace}
		reply, err := askSnowflake(ctx, o, func(ctx context.Context, c pb.SnowflakeClient) (*pb.SnowflakeDecoded, error) {
			return c.Decode(ctx, req)
		})
		if err != nil {
			return err
		}
		return newDecoded(reply).print(stdout, format)
	})
	return cmd
}

// negativeIsNoFlag names a negative ID as what it is: -1 is read as a flag, and people
// who have one got it from a number that ran over.
func negativeIsNoFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if number := unknown.GetSpecifiedShortnames(); number != "" && strings.Trim(number, "0123456789") == "" {
			return fmt.Errorf("%s: %w", cmd.Name(), negativeID("-"+number))
		}
	}
	return cmd.Parent().FlagErrorFunc()(cmd, err)
}
