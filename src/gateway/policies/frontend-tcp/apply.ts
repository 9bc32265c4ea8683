import { type Infer, record } from '../../../ground/base/shape.ts'
import { keepalive } from '../../../ground/model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({ keepalive })

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: ({ keepalive }) => ({ client: { keepalive } }),
}

export default apply
