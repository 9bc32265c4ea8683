import { optional, record, type Shape } from '../../base/shape.ts'
import { next } from '../../exchange/exchange.ts'
import { changeHeaders } from '../../model/header-changes.ts'
import type { HeaderChanges } from '../../model/resources.ts'
import { headerChanges } from '../../model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1. A half that the user left out changes nothing. */
export interface HeaderModifiersConfig {
  readonly request?: HeaderChanges
  readonly response?: HeaderChanges
}

const shape: Shape<HeaderModifiersConfig> = record({
  request: optional(headerChanges),
  response: optional(headerChanges),
})

const apply: PolicyApply<HeaderModifiersConfig> = {
  shape,
  bind({ request, response }) {
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
