/** Credentials of AWS that the place has, in which this process runs. */
import { credentialChain } from '../../../auth/aws/credential-chain.ts'
import type { Renewed } from '../../../auth/renewed.ts'
import { GatewayError } from '../../../errors/index.ts'
import type { Exchange, Verdict } from '../../../exchange/exchange.ts'
import { next } from '../../../exchange/exchange.ts'
import { type SigningPlace, signExchange } from './sign.ts'

const missingAws =
  'no AWS credentials: neither the environment, nor shared files, nor a web identity, nor a container, nor instance metadata has any'

let made: ReturnType<typeof credentialChain> | undefined

/** One for the whole process: they belong to it, not to a backend. */
function chain(): ReturnType<typeof credentialChain> {
  made ??= credentialChain()
  return made
}

/** Begins to look for them, so that the first request need not wait. */
export const prepareDefaults = (): void => look(chain())

/** `required`: without any, the request is refused; else it goes on as it came. */
export function signWithDefaults(
  exchange: Exchange,
  place: SigningPlace,
  need: 'required' | 'optional',
): Verdicts {
  const missing = need === 'required' ? missingAws : undefined
  return withValue(chain().get(), missing, (credentials) =>
    signExchange(exchange, credentials, place),
  )
}

export function look(renewed: Renewed<object>): void {
  const found = renewed.get()
  // Whoever asks with a request hears of it.
  if (found instanceof Promise) found.catch(() => {})
}

type Verdicts = Verdict | Promise<Verdict>

/** `missing`: why a request without any is refused; undefined where it goes on as it came. */
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
