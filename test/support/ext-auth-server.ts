import {
  type AttributeContext,
  CheckRequestSchema,
  CheckResponseSchema,
} from '../../proto/gen/called/ext_authz_pb.ts'
import { startUnaryService } from './unary-service.ts'

export type ExtAuthServer = Awaited<ReturnType<typeof startExtAuthServer>>

/** An authorization service over gRPC, which allows requests until the test changes its answer. */
export function startExtAuthServer() {
  return startUnaryService({
    path: '/envoy.service.auth.v3.Authorization/Check',
    request: CheckRequestSchema,
    response: CheckResponseSchema,
    keep: ({ attributes }): AttributeContext | undefined => attributes,
    first: {},
  })
}
