import { credentialChain } from '../../../../engines/auth/aws/credential-chain.ts'
import type { Renewed } from '../../../../engines/auth/renewed.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { Exchange, Verdict } from '../../../../ground/exchange/exchange.ts'
import { next } from '../../../../ground/exchange/exchange.ts'
import { type SigningContext, signExchange } from './sign.ts'

const missingAws =
  'no AWS credentials: neither the environment, nor shared files, nor a web identity, nor a container, nor instance metadata has any'

let sharedChain: ReturnType<typeof credentialChain> | undefined

/** The AWS credentials of the environment, shared by all backends. */
function chain(): ReturnType<typeof credentialChain> {
  sharedChain ??= credentialChain()
  return sharedChain
}

/** The AWS credentials of the environment; undefined if there are none. */
export const ownAws = () => chain().get()

/** Starts to fetch the credentials, so that the first request does not wait for them. */
export const prepareDefaults = (): void => prefetch(chain())

/** If there are no credentials, refuses the request if `need` is `required`, else sends it unsigned. */
export function signWithDefaults(
  exchange: Exchange,
  context: SigningContext,
  need: 'required' | 'optional',
): Verdicts {
  const missing = need === 'required' ? missingAws : undefined
  return withValue(chain().get(), missing, (credentials) =>
    signExchange(exchange, credentials, context),
  )
}

export function prefetch(renewed: Renewed<object>): void {
  const found = renewed.get()
  // Ignored here: the first request that needs the credentials reports the failure.
  if (found instanceof Promise) found.catch(() => {})
}

type Verdicts = Verdict | Promise<Verdict>

/** If `found` is undefined, the request is refused with the reason `missing`, or passes if that is unset. */
export function withValue<Value>(
  found: Value | undefined | Promise<Value | undefined>,
  missing: string | undefined,
  use: (value: Value) => Verdicts,
): Verdicts {
  const settle = (value: Value | undefined): Verdicts => {
    if (value !== undefined) return use(value)
    if (missing === undefined) return next
    throw new GatewayError('credentials_failed', missing)
  }
  if (!(found instanceof Promise)) return settle(found)
  return found.then(settle, (cause: unknown) => {
    const message = cause instanceof Error ? cause.message : 'unknown'
    throw new GatewayError('credentials_failed', message, cause)
  })
}
