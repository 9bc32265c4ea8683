/** Says what is wrong with a text that is not YAML, and what to write. Never repeats content, which may be secret. */
import type { YAMLError } from 'yaml'

/** What the message needs to know about the place of an error. */
interface ErrorLine {
  /** The whole line of the error. */
  readonly line: string
  /** The part of the line that begins at the error. */
  readonly rest: string
}

type Text = string | ((at: ErrorLine) => string)

const sameColumn =
  'Fields of one object must begin in the same column, and so must items of one list'
const noColon =
  'this line is no field: write NAME: VALUE with a space after the colon, in the column of the other fields'
const inQuotes = 'put the whole value in quotes'
const notClosed = (open: string, close: string) =>
  `a ${open} is not closed by ${close}, or the lines in between are not indented deeper than the field`

/** A field name that its colon ends, or a list item. */
const hasColon = (text: string): boolean => /:(?:\s|$)/.test(text)
const isItem = (text: string): boolean => /^\s*-(?:\s|$)/.test(text)

/** Texts by code and by the beginning of the parser's message. The first one that fits is used. */
const texts: readonly (readonly [code: YAMLError['code'], message: string, text: Text])[] = [
  ['TAB_AS_INDENT', '', 'a tab is used as indentation: write spaces'],
  [
    'BLOCK_AS_IMPLICIT_KEY',
    'Nested mappings',
    ({ rest }) =>
      hasColon(rest)
        ? `the value has a colon followed by a space: ${inQuotes}, or write the nested field on a line of its own`
        : `wrong indentation: the next line is deeper than this field, which has a value already. ${sameColumn}`,
  ],
  ['BLOCK_AS_IMPLICIT_KEY', '', `wrong indentation of a list item. ${sameColumn}`],
  [
    'MULTILINE_IMPLICIT_KEY',
    '',
    ({ line }) => (isItem(line) ? 'a list item stands among the fields of an object' : noColon),
  ],
  ['BAD_INDENT', 'Flow sequence', notClosed('[', ']')],
  ['BAD_INDENT', 'Flow map', notClosed('{', '}')],
  ['BAD_INDENT', 'All ', `wrong indentation. ${sameColumn}`],
  ['BAD_INDENT', '', 'wrong indentation: lines of a text must be deeper than its field'],
  ['MISSING_CHAR', 'Missing closing "', 'a text that begins with " is not closed by "'],
  ['MISSING_CHAR', "Missing closing '", "a text that begins with ' is not closed by '"],
  ['MISSING_CHAR', 'Implicit map keys', noColon],
  ['MISSING_CHAR', 'Implicit keys', noColon],
  ['MISSING_CHAR', 'Missing ,', 'a comma is missing between two values in [ ] or { }'],
  ['MISSING_CHAR', 'Missing space after :', 'a space is missing after a colon'],
  ['MISSING_CHAR', 'Flow sequence', notClosed('[', ']')],
  ['MISSING_CHAR', 'Flow map', notClosed('{', '}')],
  ['MISSING_CHAR', 'Comments', 'a comment follows a value at once: write a space before #'],
  ['MISSING_CHAR', 'Block collection', 'write --- on a line of its own'],
  [
    'MISSING_CHAR',
    'Missing directives-end',
    'a line that begins with % is a directive: remove it, or write --- on the line after it',
  ],
  ['MISSING_CHAR', 'Sequence item', `a list item has no dash. ${sameColumn}`],
  ['BAD_SCALAR_START', '', `a value cannot begin with this character: ${inQuotes}`],
  ['BAD_ALIAS', '', `* and & have a meaning in YAML at the beginning of a value: ${inQuotes}`],
  [
    'BAD_DQ_ESCAPE',
    '',
    `unknown escape in a text in ": write \\\\ for a backslash, or use ' quotes`,
  ],
  [
    'BLOCK_IN_FLOW',
    '',
    'a comma is missing between two values in [ ] or { }, or a value in them needs quotes',
  ],
  ['KEY_OVER_1024_CHARS', '', 'the name of a field is longer than 1,024 characters'],
  [
    'UNEXPECTED_TOKEN',
    'Unexpected block-seq-ind',
    'write the items of a list on lines of their own',
  ],
  [
    'UNEXPECTED_TOKEN',
    'Unexpected flow-',
    'a ] or } has no partner: remove it, or put the value in quotes',
  ],
  ['UNEXPECTED_TOKEN', 'Unexpected ,', 'a comma has no value before it'],
  ['UNEXPECTED_TOKEN', 'Unexpected empty item', 'a comma has no value before it'],
  ['UNEXPECTED_TOKEN', 'Block scalar', 'a text after | or > begins on the next line'],
  ['UNEXPECTED_TOKEN', 'Not a YAML token', 'a text after | or > begins on the next line'],
  [
    'UNEXPECTED_TOKEN',
    '',
    ({ line }) =>
      isItem(line) || hasColon(line)
        ? `something follows a value that has ended: ${inQuotes}, or correct the indentation`
        : noColon,
  ],
  ['MULTIPLE_ANCHORS', '', 'a value can have only one anchor (&)'],
  ['MULTIPLE_TAGS', '', 'a value can have only one tag (!)'],
]

/** @param text the text in which the error is */
export function yamlErrorText({ code, message, pos: [at] }: YAMLError, text: string): string {
  const place = lineAt(text, at)
  return `not YAML: ${foreignText(place.line) ?? textOf(code, message, place)}`
}

function textOf(code: YAMLError['code'], message: string, place: ErrorLine): string {
  const found = texts.find(([one, begin]) => one === code && message.startsWith(begin))?.[2]
  if (found === undefined) return `cannot be read here: ${inQuotes}, or correct the indentation`
  return typeof found === 'string' ? found : found(place)
}

/** Says what a line is that belongs to another kind of file; undefined if it may be YAML. */
function foreignText(line: string): string | undefined {
  if (/^(?:<{7}|={7}|>{7})/.test(line)) return 'a merge conflict is not resolved here'
  if (line.includes('{{')) return 'a template: render it first, for example with helm template'
  if (/^\s*<[!?/A-Za-z]/.test(line)) return 'this looks like HTML or XML'
  return undefined
}

function lineAt(text: string, at: number): ErrorLine {
  // Errors about the end of a text are about its last line.
  const offset = Math.min(at, text.trimEnd().length)
  const start = offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1
  const end = text.indexOf('\n', offset)
  const line = text.slice(start, end < 0 ? text.length : end)
  return { line, rest: line.slice(offset - start) }
}
