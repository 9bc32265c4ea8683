/** TLSRoute, TCPRoute and UDPRoute. */
import type { Stage } from '../graph.ts'
import { unservedRoute } from './unserved-route.ts'

export const streamRouteStage: Stage = {
  name: 'stream-route',
  kinds: ['TLSRoute', 'TCPRoute', 'UDPRoute'],
  derive: unservedRoute,
}
