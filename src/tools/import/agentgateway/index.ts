/** The source `agentgateway`: its Kubernetes resources, and the configuration file of the standalone proxy. */

import { isObjectOf } from '../kubernetes.ts'
import type { ImportSource } from '../source.ts'
import { convertObjects, sourceGroup } from './kubernetes.ts'
import { convertStandalone, isStandalone } from './standalone.ts'

export const agentgateway: ImportSource = {
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
