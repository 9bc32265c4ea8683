// Writes the tables of the kernel that say which members of messages are texts: assembly/texts/fields.ts.
import { textsFormats } from '../../src/engines/core/texts.ts'
import { decidedFields } from '../../src/engines/messages/decided-fields.ts'
import { clientFormats } from '../../src/engines/messages/formats/index.ts'
import { anyTextMembers, plainMembers } from '../../src/engines/messages/mask/message-forms.ts'
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
  ['PLAIN', 'A string that describes an event, and is no text.', plainMembers],
  ['REQUEST_TEXT', 'A member with texts in requests of any format.', anyTextMembers],
  ...Object.keys(textsFormats).map((name) => [
    `OF_${name.toUpperCase()}`,
    `A member with texts in requests of ${name}.`,
    clientFormats[name].textMembers,
  ]),
]

export function generate() {
  const flags = tables.map(
    ([name, doc], at) => `/** ${doc} */\nexport const FIELD_${name}: u32 = ${1 << at}\n`,
  )
  const ofFormats = Object.entries(textsFormats)
    .sort(([, a], [, b]) => a - b)
    .map(([name]) => `FIELD_OF_${name.toUpperCase()}`)
  const names = tables.map(([, , list]) => `  '${[...list].join(' ')} ',\n`)
  const text = `// Generated from src/engines/messages by npm run generate.
// Which strings of a request or of an answer are texts that guards read: every string, unless a field says that it
// is something else.

${flags.join('')}
/** FIELD_OF_* by the number of the format; the first one is no format. */
export const FIELD_OF: StaticArray<u32> = [0, ${ofFormats.join(', ')}]

/** The names of each table, each of which ends with a space. The bit of a table is its position. */
export const FIELD_TABLES: StaticArray<string> = [
${names.join('')}]
`
  return { 'assembly/texts/fields.ts': text }
}
