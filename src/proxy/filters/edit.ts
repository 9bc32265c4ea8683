import { GatewayError } from '../../errors/index.ts'
import type { RequestHead } from '../../exchange/exchange.ts'
import { changeHeaders } from '../../model/header-changes.ts'
import type { CompiledFilters, RewriteFilter } from './compile.ts'
import { modifyPath } from './path.ts'

/**
 * Applies header changes and rewrites to a request. `prefix`: the matched PathPrefix, if any.
 * Throws `filter_failed` where a prefix is to be replaced that was not matched as one.
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

/** Gateway API HTTPURLRewriteFilter: the query stays as it is. */
function rewrite(request: RequestHead, filter: RewriteFilter, prefix: string | undefined): void {
  if (filter.hostname !== undefined) request.authority = filter.hostname
  if (filter.path === undefined) return
  const path = modifyPath(request.path, filter.path, prefix)
  if (path === undefined) {
    throw new GatewayError('filter_failed', 'ReplacePrefixMatch needs a PathPrefix match')
  }
  request.path = path
}
