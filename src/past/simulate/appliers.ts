/** Binds policies even if the values of their Secrets are missing. The verdicts of their steps are then unknown. */

import type { PolicyApply, Step } from '../../gateway/policies/define.ts'
import type { PolicyAppliers } from '../../gateway/proxy/config/policies.ts'
import {
  type Exchange,
  next,
  type SecretValues,
  type Verdict,
} from '../../ground/exchange/exchange.ts'
import { SimulatedExchange } from './exchange.ts'

const missingSecret = 'the value of its Secret is unknown'
const missingKeys = 'the keys of its token provider were not fetched'
const missingAnswer = 'its token provider would be asked about the token'

/** A simulated request does not wait. */
const waiting = 'traffic.delay'

/** Policies that only configure connections. They cannot refuse a request, so they need no step. */
const isConnectionPolicy = new Set(['backend.tls', 'backend.gatewayCertificate'])

export function tolerantAppliers(appliers: PolicyAppliers): PolicyAppliers {
  return new Map([...appliers].map(([name, applier]) => [name, tolerant(name, applier)]))
}

function tolerant(name: string, applier: PolicyApply<unknown>): PolicyApply<unknown> {
  return {
    shape: applier.shape,
    bind(config, callouts, secrets, host): Step {
      let isMissing = false
      const known: SecretValues = {
        value(digest) {
          try {
            return secrets.value(digest)
          } catch (error) {
            isMissing = true
            throw error
          }
        },
      }
      try {
        const step = applier.bind(config, callouts, known, host)
        if (name === waiting) return { ...step, onRequest: () => next }
        return lacksKeys(name, config) ? withoutKeys(step, config) : step
      } catch (error) {
        if (!isMissing) throw error
        return isConnectionPolicy.has(name) ? {} : { onRequest: unknownStep(missingSecret) }
      }
    },
  }
}

function unknownStep(reason: string) {
  return (exchange: Exchange): Verdict => {
    if (exchange instanceof SimulatedExchange) exchange.unknowns.read(reason)
    throw new Error(reason)
  }
}

/** Whether a policy for tokens has a provider whose keys have not been fetched. */
function lacksKeys(name: string, config: unknown): boolean {
  if (name !== 'traffic.jwtAuthentication') return false
  const { providers } = config as { readonly providers: readonly { keys: readonly unknown[] }[] }
  return providers.some(({ keys }) => keys.length === 0)
}

/** Without a token, a request needs no keys. Whether it has one in another place than the usual one is not recorded. */
function withoutKeys(step: Step, config: unknown): Step {
  const { location, providers } = config as {
    readonly location?: object
    readonly providers: readonly { readonly introspection?: object }[]
  }
  const isAsked = providers.some(({ introspection }) => introspection !== undefined)
  const unknown = unknownStep(isAsked ? missingAnswer : missingKeys)
  return {
    ...step,
    onRequest: (exchange) =>
      location !== undefined || exchange.request.headers.has('authorization')
        ? unknown(exchange)
        : (step.onRequest?.(exchange) ?? { kind: 'next' }),
  }
}
