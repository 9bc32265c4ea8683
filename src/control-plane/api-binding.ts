/** What a source needs to know of the API, and the objects that exist without a manifest. */
import { secretPaths } from '../api/fields.ts'
import { controllerName, defaultClassName, gatewayGroup } from '../api/names.ts'
import { validateObject } from '../api/validate.ts'
import { ownProblems } from '../desired/derive/own-problems.ts'
import type { Examine, SecretPaths, Validate } from '../watch/index.ts'
import { regexProblem } from './regex-problem.ts'

export const apiBinding: {
  readonly validate: Validate
  readonly examine: Examine
  readonly secretPaths: SecretPaths
} = {
  validate: validateObject,
  examine: (object) => ownProblems(object, regexProblem),
  secretPaths,
}

/** The default GatewayClass; a manifest may say otherwise. */
export const builtInObjects: readonly object[] = [
  {
    apiVersion: `${gatewayGroup}/v1`,
    kind: 'GatewayClass',
    metadata: { name: defaultClassName },
    spec: { controllerName },
  },
]
