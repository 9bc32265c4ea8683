import { type Infer, record, text } from '../../../ground/base/shape.ts'
import { next, type RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. */
const shape = record({ name: text })

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ name }) {
    const refused: RespondVerdict = {
      kind: 'respond',
      status: 400,
      headers: [['content-type', 'text/plain']],
      body: `the header ${name} is missing\n`,
      reason: 'DirectResponse',
    }
    return {
      onRequest: ({ request }) => (request.headers.getAll(name).length > 0 ? next : refused),
    }
  },
}

export default apply
