/** GRPCRoute. */
import type { Stage } from '../graph.ts'
import { unservedRoute } from './unserved-route.ts'

export const grpcRouteStage: Stage = {
  name: 'grpc-route',
  kinds: ['GRPCRoute'],
  derive: unservedRoute,
}
