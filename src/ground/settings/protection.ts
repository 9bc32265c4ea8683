/** The settings of changes, for processes that read manifests themselves. */
import { row } from './table.ts'
import { oneOf } from './types.ts'

export const protectionSettings = {
  changeProtection: row(oneOf('off', 'warn', 'hold'), {
    flag: 'change-protection',
    env: 'SLUICE_CHANGE_PROTECTION',
    default: 'off',
    doc: 'Whether changes of manifests are judged on recorded requests before they take effect ([safe change](safe-change.md)). `warn`: they are logged if they do not meet the conditions. `hold`: they also wait until they are approved. `changeProtection` of GatewayParameters overrides it. Only in `sluice run` and commands that are based on it.',
  }),
}
