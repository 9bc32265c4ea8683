// docs/errors.md: the catalogue of src/errors/index.ts.
import { errorCatalogue } from '../../src/errors/index.ts'

const head = `<!-- Generated from src/errors/index.ts by npm run generate; do not edit. -->

# Errors

Everything that the gateway answers by itself, and everything that it reports without answering. A code names one situation and is never reused. \`source\` says whose fault it is; \`retry\` says whether the request may be sent again (\`reused\`: only where the connection had served before). Status 0 means that no request is concerned.

Answers are \`text/plain\` with the text of the row. A gRPC request gets HTTP 200 with \`grpc-status\` and \`grpc-message\` instead.

| code | status | source | retry | reason | text | when |
| --- | --- | --- | --- | --- | --- | --- |
`

export function generate() {
  const rows = Object.entries(errorCatalogue).map(
    ([code, { status, source, retry, reason, text, doc }]) =>
      `| \`${code}\` | ${status} | ${source} | ${retry} | ${reason} | ${text} | ${doc} |\n`,
  )
  return { 'docs/errors.md': head + rows.join('') }
}
