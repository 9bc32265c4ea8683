import { next } from '../../exchange/exchange.ts'
import { type BodyNeeds, bufferBodies } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'
import { shape, type TransformationConfig } from './config.ts'
import { Transform } from './transform.ts'

const apply: PolicyApply<TransformationConfig> = {
  shape,
  bind(config) {
    const request = config.request && new Transform(config.request)
    const response = config.response && new Transform(config.response)
    // Once the request is on its way its body is gone, so it is kept for the response half now.
    const early: BodyNeeds = {
      request: request?.request === true || response?.request === true,
      response: false,
    }
    const isEarly = request !== undefined || early.request
    return {
      ...(isEarly && {
        onRequest: (exchange) => {
          const pending = bufferBodies(exchange, early)
          if (pending === undefined) {
            request?.changeRequest(exchange)
            return next
          }
          return pending.then(() => {
            request?.changeRequest(exchange)
            return next
          })
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
