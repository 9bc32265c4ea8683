import { isUtf8 } from 'node:buffer'
import { combinedLines, type HeaderSource, HeadersView } from '../../engines/cel/index.ts'
import type { HeaderFields } from '../../ground/exchange/exchange.ts'
import { isCredentialName } from '../../ground/secrets/credential-names.ts'

/** Names of header fields whose values `redacted()` hides. */
const sensitive = { has: (name: string) => name === 'set-cookie' || isCredentialName(name) }

/**
 * How a header of several lines is read as one value. Evaluations are synchronous, so one object serves all.
 */
export const lineReading = {
  /** The line to read, from 0; the last one if there are fewer. Undefined: all lines, joined. */
  line: undefined as number | undefined,
  /** Number of lines of the longest header that was read as one value since this was set to 1. */
  lines: 1,
}

/** Joins lines, or selects one of them. The lines of a cookie are only ever read together (RFC 9113 8.2.3). */
function readLines(name: string, lines: readonly string[]): string {
  if (name === 'cookie') return combinedLines(name, lines)
  if (lines.length > lineReading.lines) lineReading.lines = lines.length
  const { line } = lineReading
  return line === undefined ? combinedLines(name, lines) : (lines[line] ?? lines.at(-1) ?? '')
}

/** Creates a view of header fields; `fields` is called whenever an expression reads one. */
export function headersView(fields: () => HeaderFields | undefined): HeadersView {
  const source: HeaderSource = {
    get: (name) => {
      const found = fields()?.lines(name)
      return typeof found === 'string' ? decode(found) : found?.map(decode)
    },
    names: () => {
      const names = new Set<string>()
      for (const [name] of fields()?.entries() ?? []) names.add(name.toLowerCase())
      return [...names]
    },
    combine: readLines,
  }
  return new HeadersView(source, sensitive)
}

/** Decodes a value that was read as Latin-1. Values beyond ASCII are nearly always UTF-8. */
function decode(value: string): string {
  for (let at = 0; at < value.length; at++) {
    if (value.charCodeAt(at) > 0x7f) return decodeBytes(value)
  }
  return value
}

function decodeBytes(value: string): string {
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : value
}
