/** Parameters of query strings. What is kept stays byte for byte as it was sent. */

/** A name or a value as servers decode it; what cannot be decoded stays as it is. */
function decodeQueryPart(text: string): string {
  if (!/[%+]/.test(text)) return text
  const spaced = text.replaceAll('+', ' ')
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
  }
}

type Change = (parameter: string, name: string, value: string) => string | undefined

/**
 * Replaces parameters, or removes those for which `change` returns undefined. Some servers separate
 * parameters by `;` as well, so both separators end a parameter. Undefined if nothing is left.
 */
export function changeQuery(query: string, change: Change): string | undefined {
  let changed = ''
  for (const piece of query.split(/(?<=[&;])/)) {
    const end = /[&;]$/.test(piece) ? piece.length - 1 : piece.length
    const parameter = piece.slice(0, end)
    const equals = parameter.indexOf('=')
    const name = equals < 0 ? parameter : parameter.slice(0, equals)
    const value = equals < 0 ? '' : parameter.slice(equals + 1)
    const kept = change(parameter, decodeQueryPart(name), decodeQueryPart(value))
    if (kept !== undefined) changed += kept + piece.slice(end)
  }
  const text = changed.replace(/[&;]$/, '')
  return text === '' ? undefined : text
}
