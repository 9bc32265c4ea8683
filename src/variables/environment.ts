import type { CelRecord } from '../cel/index.ts'
import type { RoutePlace } from '../exchange/exchange.ts'

const { POD_NAME: podName, POD_NAMESPACE: podNamespace, NAMESPACE: anyNamespace } = process.env
const namespace = podNamespace ?? anyNamespace

let lastGateway: string | undefined
let last: CelRecord = {}

/**
 * `env`: the pod of the proxy, where it runs in one (the deployment sets the variables), and the name
 * of the Gateway that the request came to.
 */
export function environmentAt({ gateway }: RoutePlace): CelRecord {
  if (gateway !== lastGateway) {
    lastGateway = gateway
    const name = gateway.slice(gateway.indexOf('/') + 1)
    last = { podName, namespace, gateway: name === '' ? undefined : name }
  }
  return last
}
