import type { RespondVerdict } from '../../exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'
import { type DirectResponseConfig, shape } from './config.ts'

const apply: PolicyApply<DirectResponseConfig> = {
  shape,
  bind({ status, body }) {
    // No Content-Type is guessed: the interface has no field for one.
    const verdict: RespondVerdict = { kind: 'respond', status, body, reason: 'DirectResponse' }
    return { onRequest: () => verdict }
  },
}

export default apply
