/** GatewayParameters that let Gateways run MCP servers that are commands. */
import { ownGroup } from '../../../ground/model/api-names.ts'
import type { IndexDefinition } from '../object-indexes.ts'
import { specOf } from '../specs.ts'

/**
 * Annotation of the object that stands for the command line of `sluice run`. Its value is the reason for which commands
 * have network access; empty if they have none.
 */
export const stdioAnnotation = `${ownGroup}/stdio-network`

export const stdioParameters: IndexDefinition = {
  name: 'stdio-parameters',
  kinds: ['GatewayParameters'],
  keys: ({ object }) =>
    object !== undefined && specOf<'GatewayParameters'>(object).stdio !== undefined ? [''] : [],
}
