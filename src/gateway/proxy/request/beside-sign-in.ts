import { guardedField, hideCookies } from '../../sign-in/other-routes.ts'
import type { RequestContext } from './request-context.ts'
import type { GatewayRuntime } from './runtime.ts'

/** Backends of routes without sign-in neither get its cookies nor set them. */
export function hideSignIn(context: RequestContext, { config }: GatewayRuntime): undefined {
  const { exchange } = context
  if (!config.headers.hasSignIn || guardedField(exchange) !== undefined) return
  context.isBesideSignIn = true
  hideCookies(exchange)
}
