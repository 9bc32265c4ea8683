/** Patterns of names, in which `*` stands for any text. */

/** Returns whether the name matches one of the patterns. Takes linear time for each pattern and asterisk. */
export const matchesAny = (patterns: readonly string[], name: string): boolean =>
  patterns.some((pattern) => matches(pattern, name))

function matches(pattern: string, name: string): boolean {
  const parts = pattern.split('*')
  const [first = '', ...rest] = parts
  const last = rest.pop()
  if (last === undefined) return pattern === name
  if (name.length < first.length + last.length) return false
  if (!name.startsWith(first) || !name.endsWith(last)) return false
  const end = name.length - last.length
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

/** Whether the lists of patterns let a name pass. An empty list of `include` lets all names pass. */
export const isSelected = (
  {
    include,
    exclude,
  }: { readonly include: readonly string[]; readonly exclude: readonly string[] },
  name: string,
): boolean => (include.length === 0 || matchesAny(include, name)) && !matchesAny(exclude, name)
