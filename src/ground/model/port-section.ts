/**
 * The section of a policy target that stands for a port of a Gateway. No listener can have such a name, because names
 * have no colon.
 */
const prefix = 'port:'

export const portSection = (port: number): string => `${prefix}${port}`

export const isPortSection = (section: string | undefined): boolean =>
  section?.startsWith(prefix) === true

/** Returns the port that the section stands for; undefined if it stands for none. */
export const portOfSection = (section: string | undefined): number | undefined =>
  section?.startsWith(prefix) === true ? Number(section.slice(prefix.length)) : undefined
