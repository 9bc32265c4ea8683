/**
 * The section of a policy target that stands for a port of a Gateway. No listener can have such a name, because names
 * have no colon.
 */
const prefix = 'port:'

export const portSection = (port: number): string => `${prefix}${port}`

export const isPortSection = (section: string | undefined): boolean =>
  section?.startsWith(prefix) === true
