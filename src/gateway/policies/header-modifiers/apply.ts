import { type Infer, optional, record } from '../../../ground/base/shape.ts'
import { next } from '../../../ground/exchange/exchange.ts'
import { changeHeaders } from '../../../ground/model/header-changes.ts'
import { revealHeaders } from '../../../ground/model/inline-secrets.ts'
import { headerChanges } from '../../../ground/model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. If the changes of a message are omitted, it is not changed. */
const shape = record({ request: optional(headerChanges), response: optional(headerChanges) })

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind(config, _callouts, secrets) {
    const request = config.request && revealHeaders(config.request, secrets)
    const response = config.response && revealHeaders(config.response, secrets)
    return {
      onRequest:
        request &&
        ((exchange) => {
          changeHeaders(exchange.request, request)
          return next
        }),
      onResponse:
        response &&
        ((exchange) => {
          if (exchange.response !== undefined) changeHeaders(exchange.response, response)
        }),
    }
  },
}

export default apply
