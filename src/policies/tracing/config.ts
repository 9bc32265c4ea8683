import type { DirectTarget } from '../../model/resources.ts'
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
