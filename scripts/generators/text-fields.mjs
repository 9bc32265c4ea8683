// Writes the tables of the kernel that say which members of messages are texts: assembly/texts/fields.ts.
import { decidedFields } from '../../src/engines/messages/decided-fields.ts'
import { guardedFields } from '../../src/engines/messages/mask/plain-keys.ts'
import { otherFields } from '../../src/engines/messages/mask/repeated-texts.ts'
import * as fields from '../../src/engines/messages/mask/text-fields.ts'

/** Each table has a bit of its own, in this order. */
const tables = [
  ['CONTENT', 'A content: a text, parts, or one part.', fields.contentFields],
  ['SETTING', 'A top-level setting of a request.', fields.settings],
  ['LABEL', 'A string that is no text.', fields.labels],
  ['REASONING', 'Reasoning of the assistant.', fields.reasoningFields],
  ['ARGUMENT', 'Arguments of tool calls, schemas, settings of parts.', fields.argumentFields],
  ['DETAIL', 'Details of answers that are no texts of the model.', fields.responseDetails],
  ['CITATION', 'Texts that quote or name sources.', fields.citationFields],
  ['CLIENT_CALL', 'Arguments of calls that the client runs.', fields.clientCall],
  ['IMAGE_CALL', 'An image, and how it was made.', fields.imageCall],
  [
    'GUARDED',
    'By which guards decide what they read: no name may differ from it only in case.',
    guardedFields,
  ],
  ['DECIDED', 'The same for top-level fields, which the gateway decides.', decidedFields],
  ['UNREPEATED', 'Nothing below it repeats a text of an answer.', otherFields],
]

export function generate() {
  const flags = tables.map(
    ([name, doc], at) => `/** ${doc} */\nexport const FIELD_${name}: u32 = ${1 << at}\n`,
  )
  const names = tables.map(([, , list]) => `  '${[...list].join(' ')} ',\n`)
  const text = `// Generated from src/engines/messages by npm run generate.
// Which strings of a request or of an answer are texts that guards read: every string, unless a field says that it
// is something else.

${flags.join('')}
/** The names of each table, each of which ends with a space. The bit of a table is its position. */
export const FIELD_TABLES: StaticArray<string> = [
${names.join('')}]
`
  return { 'assembly/texts/fields.ts': text }
}
