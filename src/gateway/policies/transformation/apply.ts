import { type Infer, list, optional, record, text } from '../../../ground/base/shape.ts'
import { type Exchange, next, type Verdict } from '../../../ground/exchange/exchange.ts'
import { revealLiterals } from '../../../ground/model/inline-secrets.ts'
import { type BodyNeeds, bufferBodies } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'
import { Transform, transformShape } from './transform.ts'

/** The compiled form that proxies receive. If the changes of a message are omitted, it is not changed. */
const shape = record({
  request: optional(transformShape),
  response: optional(transformShape),
  /** Digests of literals that are secrets; omitted if there are none. */
  digests: optional(list(text)),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind(config, _callouts, secrets) {
    const reveal = (expression: string) => revealLiterals(expression, config.digests, secrets)
    const request = config.request && new Transform(config.request, reveal)
    const response = config.response && new Transform(config.response, reveal)
    // Changes to the response may read the request's body, which must be buffered before it is sent.
    const early: BodyNeeds = {
      request: request?.request === true || response?.request === true,
      response: false,
    }
    const change = (exchange: Exchange): Verdict => {
      request?.changeRequest(exchange)
      return next
    }
    const isEarly = request !== undefined || early.request
    return {
      ...(isEarly && {
        onRequest: (exchange) => {
          const pending = bufferBodies(exchange, early)
          return pending === undefined ? change(exchange) : pending.then(() => change(exchange))
        },
      }),
      ...(response !== undefined && {
        onResponse: (exchange) => {
          const pending = bufferBodies(exchange, response)
          if (pending === undefined) return response.changeResponse(exchange)
          return pending.then(() => response.changeResponse(exchange))
        },
      }),
    }
  },
}

export default apply
