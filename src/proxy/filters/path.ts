import type { PathModifier } from '../../model/resources.ts'

/**
 * The path after a Gateway API HTTPPathModifier. `prefix` is the matched PathPrefix; undefined
 * where the match was of another type, and then ReplacePrefixMatch gives undefined. The `*` of
 * OPTIONS (RFC 9110 9.3.7) has no prefix to replace and stays.
 */
export function modifyPath(
  path: string,
  modifier: PathModifier,
  prefix: string | undefined,
): string | undefined {
  if (modifier.type === 'ReplaceFullPath') return withSlash(modifier.value)
  if (prefix === undefined) return undefined
  if (path === '*') return path
  // Prefixes match whole segments and trailing slashes do not count, on either side: what follows
  // the matched segments begins with a slash or is empty, so the two join with exactly one.
  const rest = path.slice(withoutTrailingSlashes(prefix).length)
  return withSlash(withoutTrailingSlashes(modifier.value) + rest)
}

function withoutTrailingSlashes(text: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === '/') end--
  return text.slice(0, end)
}

const withSlash = (path: string): string => (path.startsWith('/') ? path : `/${path}`)
