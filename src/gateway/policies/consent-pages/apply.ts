import { type Infer, record } from '../../../ground/base/shape.ts'
import { serveConsent } from '../../consent/pages.ts'
import type { PolicyApply } from '../define.ts'

const shape = record({})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: () => ({ onRequest: serveConsent }),
}

export default apply
