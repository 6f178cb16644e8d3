// Command promlint reads a text in Prometheus' exposition format from its standard input and says what
// `promtool check metrics` would: it runs the same parser and the same rules. Exit status 1: it cannot be parsed; 3: it
// breaks a rule.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(1, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		fail(1, err)
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		fail(1, err)
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, problem.Metric, problem.Text)
	}
	if len(problems) > 0 {
		os.Exit(3)
	}
	fmt.Printf("%d metrics\n", len(families))
}

func fail(status int, err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(status)
}
