"""Descriptions of contenders: what a user would pick instead of a promoted kernel.

A description is data: which operation, where it applies, how it is called, which package and versions, which licence.
Nothing of a library is part of Forge, and nothing of a library is imported here. Others add theirs as files of a
package that an entry point of the group `forge.contenders` names.
"""
