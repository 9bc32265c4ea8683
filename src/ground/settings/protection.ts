/** The settings of changes, for processes that read manifests themselves. */
import { row } from './table.ts'
import { oneOf } from './types.ts'

export const protectionSettings = {
  changeProtection: row(oneOf('off', 'warn', 'hold'), {
    flag: 'change-protection',
    env: 'SLUICE_CHANGE_PROTECTION',
    default: 'off',
    doc: 'Whether changes of manifests are judged on recorded requests before they take effect ([safe change](safe-change.md)). If a change does not meet the conditions, `warn` logs this, and `hold` also makes the change wait until it is approved. `changeProtection` of GatewayParameters overrides it. Only in `sluice run` and commands that are based on it.',
  }),
}
