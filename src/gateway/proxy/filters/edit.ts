import { GatewayError } from '../../../ground/errors/index.ts'
import type { RequestHead } from '../../../ground/exchange/exchange.ts'
import { changeHeaders } from '../../../ground/model/header-changes.ts'
import type { PathModifier } from '../../../ground/model/resources.ts'
import type { CompiledFilters, RewriteFilter } from './compile.ts'

/**
 * Applies header changes and rewrites to a request. `prefix` is the matched PathPrefix, if any. Throws
 * `filter_failed` if a prefix is to be replaced but the path was not matched by prefix.
 */
export function editRequest(
  request: RequestHead,
  filters: CompiledFilters,
  prefix: string | undefined,
): void {
  for (const edit of filters.edits) {
    if (edit.type === 'rewrite') rewrite(request, edit, prefix)
    else changeHeaders(request, edit.changes)
  }
}

/** Applies a Gateway API HTTPURLRewriteFilter. The query does not change. */
function rewrite(request: RequestHead, filter: RewriteFilter, prefix: string | undefined): void {
  if (filter.hostname !== undefined) request.authority = filter.hostname
  if (filter.path === undefined) return
  const path = modifyPath(request.path, filter.path, prefix)
  if (path === undefined) {
    throw new GatewayError('filter_failed', 'ReplacePrefixMatch needs a PathPrefix match')
  }
  request.path = path
}

/**
 * Applies a Gateway API HTTPPathModifier to a path. `prefix` is the matched PathPrefix. Without a prefix,
 * ReplacePrefixMatch returns undefined. It does not change the path `*` of OPTIONS (RFC 9110 9.3.7).
 */
export function modifyPath(
  path: string,
  modifier: PathModifier,
  prefix: string | undefined,
): string | undefined {
  if (modifier.type === 'ReplaceFullPath') return withSlash(modifier.value)
  if (prefix === undefined) return undefined
  if (path === '*') return path
  // Prefixes match whole segments, so the rest is empty or begins with a slash.
  const rest = path.slice(withoutTrailingSlashes(prefix).length)
  return withSlash(withoutTrailingSlashes(modifier.value) + rest)
}

function withoutTrailingSlashes(text: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === '/') end--
  return text.slice(0, end)
}

const withSlash = (path: string): string => (path.startsWith('/') ? path : `/${path}`)
