import { choice, list, optional, record, type Shape, text } from '../../base/shape.ts'
import type { DirectTarget } from '../../model/resources.ts'
import { directTarget, namedExpression } from '../../model/shapes.ts'
import type { AttributeConfig } from '../../variables/index.ts'

/** Version 1. */
export interface TracingConfig {
  readonly target: DirectTarget
  readonly protocol: 'HTTP' | 'GRPC'
  readonly attributes?: AttributeConfig
  readonly resources: readonly { readonly name: string; readonly expression: string }[]
  /** Of requests without a trace; none where absent. */
  readonly randomSampling?: string
  /** Of requests with one; all where absent. */
  readonly clientSampling?: string
}

export const shape: Shape<TracingConfig> = record({
  target: directTarget,
  protocol: choice('HTTP', 'GRPC'),
  attributes: optional(
    record<AttributeConfig>({
      remove: optional(list(text)),
      add: optional(list(namedExpression)),
    }),
  ),
  resources: list(namedExpression),
  randomSampling: optional(text),
  clientSampling: optional(text),
})
