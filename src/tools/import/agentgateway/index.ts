/** The source `agentgateway`: its Kubernetes resources, and the configuration file of the standalone proxy. */
import type { Source } from '../source.ts'
import { convertObjects, isObjectOf, sourceGroup } from './kubernetes.ts'
import { convertStandalone, isStandalone } from './standalone.ts'

export const agentgateway: Source = {
  name: 'agentgateway',
  port: 3000,
  detects: (document) => isStandalone(document) || isObjectOf(document, sourceGroup),
  convert(documents, result) {
    for (const document of documents.filter(isStandalone)) convertStandalone(document, result)
    convertObjects(
      documents.filter((document) => !isStandalone(document)),
      result,
    )
  },
}
