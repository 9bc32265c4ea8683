// docs/events.md from the vocabulary in events/ and its frozen samples.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { vocabulary } from '../../events/index.ts'

const samples = join(import.meta.dirname, '../../events/samples')

const introduction = `<!-- Generated from events/ by npm run generate; do not edit. -->
# Events

The log is a sequence of events: what the control plane observed, what it decided, and what its proxies acknowledged.
Every event is a [CloudEvents 1.0](https://github.com/cloudevents/spec) envelope in JSON:

| attribute | meaning |
|---|---|
| \`specversion\` | \`1.0\` |
| \`id\` | unique in the log; for events about an object \`<epoch>:<uid>:<resourceVersion>:<type>\`, so that appending twice changes nothing |
| \`source\` | the writer of the event |
| \`type\` | one of the types below; ends with its version |
| \`subject\` | \`sluice.<cluster>.<kind>.<namespace>.<name>\`; bytes other than letters, digits, \`-\` and \`_\` as \`%XX\`, an empty namespace as \`_\` |
| \`time\` | RFC 3339, UTC, milliseconds; the only time that the fold uses |
| \`datacontenttype\` | \`application/json\` |
| \`dataschema\` | the section of this page |
| \`epoch\` | extension: lease epoch of the writer, 0 without a lease |
| \`foldversion\` | extension: version of the fold, on decisions only |
| \`data\` | the content of the event |

The log gives each event a position, 1, 2, 3 and so on, which is stored outside of the envelope. An event is
at most 1 MiB. Old events are never rewritten: \`events/upcast.ts\` converts them to their current
version when they are read, and \`events/samples/\` has a permanent sample of each version.

Secret values never enter the log. The log has facts about a Secret instead: its keys, whether a
certificate matches its key, when the certificate expires, and a keyed digest that changes with the value.
`

const cell = (text) => text.replaceAll('|', '\\|')

function section({ name, type, version, about, fields }) {
  const file = `${type
    .replace('dev.sluice.', '')
    .replaceAll('.', '-')
    .replace(/-v(\d+)$/, '.v$1')}.json`
  const sample = JSON.parse(readFileSync(join(samples, file), 'utf8'))
  const rows = Object.entries(fields).map(([field, text]) => `| \`${field}\` | ${cell(text)} |`)
  return `## ${name}

${about}

Type \`${type}\`, version ${version}. Sample: \`events/samples/${file}\`.

| field | meaning |
|---|---|
${rows.join('\n')}

\`\`\`json
${JSON.stringify(sample.data, null, 2)}
\`\`\`
`
}

/** @returns {Record<string, string>} */
export function generate() {
  const index = vocabulary.map(({ name, about }) => {
    const [first] = about.split(/(?<=\.) /)
    return `| [${name}](#${name.toLowerCase()}) | ${cell(first)} |`
  })
  const overview = `## Overview\n\n| event | what has happened |\n|---|---|\n${index.join('\n')}\n`
  const page = [introduction, overview, ...vocabulary.map(section)].join('\n')
  return { 'docs/events.md': page }
}
