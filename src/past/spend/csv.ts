/** Reads and writes comma-separated values by RFC 4180. */

/** Returns the rows. Takes linear time; a quote inside a value without quotes is part of it. */
export function readCsv(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  const end = () => {
    if (row.length > 1 || row[0] !== '') rows.push(row)
    row = []
  }
  let at = text.startsWith('\ufeff') ? 1 : 0
  while (at < text.length) {
    const value = text[at] === '"' ? quotedAt(text, at) : plainAt(text, at)
    row.push(value.text)
    at = value.end
    if (text[at] === ',') {
      at++
      if (at === text.length) row.push('')
      continue
    }
    if (text[at] === '\r') at++
    if (text[at] === '\n') at++
    end()
  }
  if (row.length > 0) end()
  return rows
}

interface Value {
  readonly text: string
  readonly end: number
}

function plainAt(text: string, start: number): Value {
  let end = start
  while (end < text.length && !',\r\n'.includes(text[end] ?? '')) end++
  return { text: text.slice(start, end), end }
}

function quotedAt(text: string, start: number): Value {
  const parts: string[] = []
  let at = start + 1
  for (;;) {
    const quote = text.indexOf('"', at)
    if (quote < 0) return { text: parts.join('') + text.slice(at), end: text.length }
    parts.push(text.slice(at, quote))
    if (text[quote + 1] !== '"') {
      const rest = plainAt(text, quote + 1)
      return { text: parts.join('') + rest.text, end: rest.end }
    }
    parts.push('"')
    at = quote + 2
  }
}

/**
 * Writes one row. A text that a spreadsheet would take for a formula gets an apostrophe in front: clients choose names
 * of models.
 */
export const csvRow = (values: readonly string[]): string => values.map(csvValue).join(',')

function csvValue(value: string): string {
  const isNumber = /^[+-]?\d+(\.\d+)?$/.test(value)
  const safe = !isNumber && /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
