/** The commands and options of the command line, as completion scripts and the manual page need them. */
import type { Command, Option } from 'commander'

export interface DescribedOption {
  /** The short flag, if there is one, and then the long flag. */
  readonly flags: readonly string[]
  readonly description: string
  /** The name of the value, such as `path`; not set if the option takes no value. */
  readonly value?: string | undefined
  readonly choices: readonly string[]
  readonly isRepeatable: boolean
}

export interface DescribedCommand {
  /** The words that select the command, such as `idp prepare`; empty for the program itself. */
  readonly path: string
  readonly name: string
  readonly description: string
  /** The positional arguments as the usage line shows them. */
  readonly args: string
  readonly options: readonly DescribedOption[]
  readonly commands: readonly DescribedCommand[]
}

const helpOption: DescribedOption = {
  flags: ['-h', '--help'],
  description: 'display help for command',
  choices: [],
  isRepeatable: false,
}

/** Describes a command and everything below it, without hidden options. */
export function describeCommand(
  command: Command,
  parents: readonly string[] = [],
): DescribedCommand {
  const own = parents.length === 0 && command.parent === null ? [] : [...parents, command.name()]
  return {
    path: own.join(' '),
    name: command.name(),
    description: command.description(),
    args: command.registeredArguments
      .map((argument) => {
        const name = `${argument.name()}${argument.variadic ? '...' : ''}`
        return argument.required ? `<${name}>` : `[${name}]`
      })
      .join(' '),
    options: [...command.options.filter(({ hidden }) => !hidden).map(describeOption), helpOption],
    commands: command.commands.map((child) => describeCommand(child, own)),
  }
}

function describeOption(option: Option): DescribedOption {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    value: /[<[]([^>\]]+)[>\]]/.exec(option.flags)?.[1],
    choices: option.argChoices ?? [],
    isRepeatable: option.description.includes('may be repeated'),
  }
}

/** All commands below a command, each before its own children. */
export function descendants({ commands }: DescribedCommand): readonly DescribedCommand[] {
  return commands.flatMap((child) => [child, ...descendants(child)])
}

/** Whether the value of an option names a file or a folder. */
export const isPath = ({ value }: DescribedOption): boolean => value === 'path'
