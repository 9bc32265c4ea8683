/** What the command line says of itself. */
import type { Command } from 'commander'
import type { SettingRow } from '../settings/row.ts'

export type SettingHelp = Pick<
  SettingRow<unknown>,
  'doc' | 'form' | 'default' | 'defaultText' | 'env'
>

/** What the help says of a setting with a flag: the row of docs/settings.md, in a paragraph. */
export function settingHelp({ doc, form, default: value, defaultText, env }: SettingHelp): string {
  return `${doc} (${form}; default: ${defaultText ?? value}; ${env})`
}

/**
 * Adds `help [command...]` in place of the library's own, which prints the whole help for a name that
 * it does not know and not a word on that.
 */
export function addHelp(group: Command): void {
  group.helpCommand(false)
  group
    .command('help [command...]')
    .description('display help for command')
    .action((names: readonly string[]) => helpOn(group, names))
}

function helpOn(group: Command, [name, ...rest]: readonly string[]): void {
  // What a command without commands of its own is given are its arguments.
  if (name === undefined || group.commands.length === 0) group.help()
  const named = group.commands.find((command) => command.name() === name)
  if (named !== undefined) helpOn(named, rest)
  // It is refused as it is without `help`, with a name that is like it.
  else group.parse([name], { from: 'user' })
}
