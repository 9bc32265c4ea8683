/** Decodes a name or value of a query as servers do; invalid escapes are kept. */
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
 * Replaces each parameter of a query string by the result of `change`, or removes it if that is undefined. A
 * parameter that `change` returns stays as it was sent, byte for byte. Both `&` and `;` end a parameter,
 * because some servers also separate parameters by `;`. Returns undefined if nothing is left.
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
