import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { ModelCall } from './model-call.ts'

/** The path that the user wrote stands for every format; the client's query goes with its path. */
export function overridePath(
  { exchange: { request } }: RequestContext,
  { provider }: Pick<ModelCall, 'provider'>,
): boolean {
  const path = provider?.provider.path
  if (path === undefined) return false
  const [only = '', ...query] = path.split('?')
  request.path = only.startsWith('/') ? only : `/${only}`
  request.query = query.length === 0 ? undefined : query.join('?')
  return true
}

/** Parameter of vendor B. Clients of its SDK always send it, whatever the provider is. */
export const apiVersion = 'api-version'
