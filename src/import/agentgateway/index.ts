/** The source `agentgateway`: its Kubernetes resources. */
import type { Source } from '../source.ts'
import { convertObjects, isObjectOf, sourceGroup } from './kubernetes.ts'

export const agentgateway: Source = {
  name: 'agentgateway',
  port: 3000,
  detects: (document) => isObjectOf(document, sourceGroup),
  convert: convertObjects,
}
