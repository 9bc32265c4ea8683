/** Names messages of clients in headers before policies and routes read these headers. */
import type { RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { CompiledRule } from '../config/rules.ts'
import type { BackendKinds } from './backend-kind.ts'
import type { RequestContext } from './request-context.ts'

/**
 * Sets the headers if the rule leads to a backend whose messages have them. Returns a refusal if that is not
 * possible, and undefined if the request can continue. `mayJoin` as in `BackendKind.nameMessage`.
 */
export function nameMessage(
  context: RequestContext,
  kinds: BackendKinds,
  rule: CompiledRule | undefined,
  mayJoin?: () => boolean,
): RespondVerdict | undefined | Promise<RespondVerdict | undefined> {
  for (const backend of rule?.backends ?? []) {
    const kind = kinds.of(backend)
    if (kind?.nameMessage !== undefined) return kind.nameMessage(context, mayJoin)
  }
  return undefined
}
