/** How destinations of A2A agents differ from their messages in proto/resource.proto. */
export const a2aShapes = {
  'Backend.A2a': { words: { pinning: ['Warn', 'Block'] }, absentIfEmpty: ['pins'] },
} as const
