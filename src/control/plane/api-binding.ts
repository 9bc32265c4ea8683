/** Binds sources to the API, and defines the objects that exist without a manifest. */

import { checkRegex } from '../../engines/core/regex.ts'
import {
  controllerName,
  defaultClassName,
  gatewayGroup,
  ownGroup,
} from '../../ground/model/api-names.ts'
import { secretPaths } from '../api/fields.ts'
import { validateObject } from '../api/validate.ts'
import { ownProblems } from '../desired/derive/own-problems.ts'
import { stdioAnnotation } from '../desired/derive/stdio-parameters.ts'
import type { ObserveOptions } from '../watch/observed.ts'

export const apiBinding: Pick<ObserveOptions, 'validate' | 'examine' | 'secretPaths'> = {
  validate: validateObject,
  examine: (object) => ownProblems(object, regexProblem),
  secretPaths,
}

/** The default GatewayClass; a manifest may define it differently. */
export const builtInObjects: readonly object[] = [
  {
    apiVersion: `${gatewayGroup}/v1`,
    kind: 'GatewayClass',
    metadata: { name: defaultClassName },
    spec: { controllerName },
  },
]

/** Names the object that stands for the command line of `sluice run`. */
export const commandLine = { namespace: 'sluice-run', name: 'command-line' } as const

/**
 * The objects of a gateway that runs MCP servers that are commands. `network` says why their network is not off; empty
 * if it is.
 */
export const objectsWithStdio = (network: string): readonly object[] => [
  ...builtInObjects,
  {
    apiVersion: `${ownGroup}/v1alpha1`,
    kind: 'GatewayParameters',
    metadata: {
      ...commandLine,
      annotations: { [stdioAnnotation]: network },
    },
    spec: { stdio: {} },
  },
]

/** Returns why the regex engine refuses a pattern, or undefined if the pattern is valid. */
export function regexProblem(pattern: string): string | undefined {
  const checked = checkRegex(pattern)
  return checked.ok ? undefined : checked.message
}
