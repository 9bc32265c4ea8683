import { next } from '../../exchange/exchange.ts'
import { changeHeaders } from '../../model/header-changes.ts'
import type { PolicyApply } from '../define.ts'
import { type HeaderModifiersConfig, shape } from './config.ts'

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
